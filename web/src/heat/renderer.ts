// Paints a frame of values: WebGL2 where there is a real GPU, the CPU where not.
//
// A software WebGL is slower than a lookup table on the CPU, so one frame of each is timed.
import { colourise, type Domain, INF_INK, NAN_INK } from './colour';

export interface Picture {
  frame: Float32Array;
  width: number;
  height: number;
  lut: Uint8Array;
  domain: Domain;
}

export interface Renderer {
  name: 'webgl2' | 'canvas';
  paint(target: CanvasRenderingContext2D, picture: Picture): void;
}

export const canvasRenderer: Renderer = {
  name: 'canvas',
  paint(target, { frame, width, height, lut, domain }) {
    const image = target.createImageData(width, height);
    colourise(frame, width, lut, domain, image.data);
    target.putImageData(image, 0, 0);
  },
};

const VERTEX = `#version 300 es
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(corner * 4.0 - 1.0, 0.0, 1.0);
}`;

const rgb = (c: readonly number[]) => `vec3(${c.map((v) => (v / 255).toFixed(4)).join(',')})`;

// isnan() is not reliable in GLSL, so bits are tested. The same sums as placeOn() and colourise().
const FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
uniform highp sampler2D values;
uniform highp sampler2D colours;
uniform int mode;
uniform float low, limit;
uniform int height;
out vec4 colour;
float place(float v) {
  if (mode == 0) return limit <= 0.0 ? 0.5 : clamp(0.5 + v / (2.0 * limit), 0.0, 1.0);
  if (v <= 0.0 || limit <= 0.0) return 0.0;
  if (mode == 1) return clamp(v / limit, 0.0, 1.0);
  float span = log(limit / low);
  return span <= 0.0 ? 1.0 : max(0.04, clamp(log(v / low) / span, 0.0, 1.0));
}
void main() {
  ivec2 at = ivec2(gl_FragCoord.x, float(height) - gl_FragCoord.y);
  float v = texelFetch(values, at, 0).r;
  uint bits = floatBitsToUint(v);
  if ((bits & 0x7f800000u) != 0x7f800000u) {
    colour = texelFetch(colours, ivec2(int(floor(255.0 * place(v) + 0.5)), 0), 0);
    return;
  }
  bool isNan = (bits & 0x007fffffu) != 0u;
  bool isNegative = !isNan && (bits >> 31u) == 1u;
  int line = ((isNegative ? at.x - at.y + 4096 : at.x + at.y) >> 1) & 1;
  vec3 nan = line == 0 ? ${rgb(NAN_INK[0])} : ${rgb(NAN_INK[1])};
  vec3 inf = line == 0 ? ${rgb(INF_INK[0])} : ${rgb(INF_INK[1])};
  colour = vec4(isNan ? nan : inf, 1.0);
}`;

function compile(gl: WebGL2RenderingContext): WebGLProgram | null {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

function texture(gl: WebGL2RenderingContext, unit: number) {
  gl.activeTexture(gl.TEXTURE0 + unit);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
    gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
}

/** One context for all maps; null where WebGL2 is missing or only emulated. */
export function webglRenderer(allowSlow = false): Renderer | null {
  const canvas = document.createElement('canvas');
  const gl = canvas.getContext('webgl2', {
    failIfMajorPerformanceCaveat: !allowSlow,
    alpha: false,
    antialias: false,
  });
  const program = gl ? compile(gl) : null;
  if (!gl || !program) return null;
  gl.useProgram(program);
  const at = (name: string) => gl.getUniformLocation(program, name);
  texture(gl, 0);
  texture(gl, 1);
  gl.uniform1i(at('values'), 0);
  gl.uniform1i(at('colours'), 1);
  const places = { mode: at('mode'), low: at('low'), limit: at('limit'), height: at('height') };
  return {
    name: 'webgl2',
    paint(target, { frame, width, height, lut, domain }) {
      canvas.width = width;
      canvas.height = height;
      gl.viewport(0, 0, width, height);
      gl.activeTexture(gl.TEXTURE0);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, width, height, 0, gl.RED, gl.FLOAT, frame);
      gl.activeTexture(gl.TEXTURE1);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, lut);
      gl.uniform1i(places.mode, domain.scale === 'value' ? 0 : domain.log ? 2 : 1);
      gl.uniform1f(places.low, domain.low);
      gl.uniform1f(places.limit, domain.limit);
      gl.uniform1i(places.height, height);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
      target.drawImage(canvas, 0, 0);
    },
  };
}

/** The time for one frame, with a read at the end so that the GPU has to be done. */
function timeOf(one: Renderer): number {
  const [width, height] = [512, 256];
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const target = canvas.getContext('2d')!;
  const domain: Domain = { scale: 'value', low: 0, limit: 1, log: false };
  const picture = {
    frame: new Float32Array(width * height),
    width,
    height,
    lut: new Uint8Array(1024),
    domain,
  };
  one.paint(target, picture);
  const start = performance.now();
  one.paint(target, picture);
  target.getImageData(0, 0, 1, 1);
  return performance.now() - start;
}

function quicker(): Renderer {
  const gpu = webglRenderer();
  return gpu && timeOf(gpu) < timeOf(canvasRenderer) ? gpu : canvasRenderer;
}

let chosen: Renderer | null = null;

/** Probed once. sessionStorage 'renderer' asks for one of the two, for tests. */
export function renderer(): Renderer {
  const wish = sessionStorage.getItem('renderer');
  if (wish === 'canvas') chosen ??= canvasRenderer;
  if (wish === 'webgl2') chosen ??= webglRenderer(true);
  chosen ??= quicker();
  return chosen;
}
