// A uPlot chart that follows its size and the theme, as a figure that can be focused and read.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { dark } from '../store/prefs';

/** The colours of the page, for canvases. */
export function ink(name: string): string {
  return getComputedStyle(probeElement(name)).color;
}

// light-dark() is resolved only where it is used, so a hidden element uses each colour once.
const probes = new Map<string, HTMLElement>();
function probeElement(name: string): HTMLElement {
  const known = probes.get(name);
  if (known) return known;
  const node = document.createElement('i');
  node.hidden = true;
  node.style.color = `var(--${name})`;
  document.body.append(node);
  probes.set(name, node);
  return node;
}

export interface PlotProps {
  label: string;
  data: uPlot.AlignedData;
  /** Made anew when `key` changes; sizes come from the element. */
  options: (width: number, height: number) => uPlot.Options;
  watch: string;
  onKey?: (event: KeyboardEvent) => void;
  onMake?: (plot: uPlot) => void;
  children?: ComponentChildren;
}

/** uPlot remembers how it left its canvas: what we draw on it has to leave it like that. */
function leaving(options: uPlot.Options): uPlot.Options {
  const hooks = options.hooks ?? {};
  for (const when of ['drawClear', 'draw'] as const)
    hooks[when] = [(plot) => plot.ctx.save(), ...(hooks[when] ?? []), (plot) => plot.ctx.restore()];
  return { ...options, hooks };
}

export function Plot({ label, data, options, watch, onKey, onMake, children }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = dark.value;

  useEffect(() => {
    const node = box.current!;
    const { clientWidth, clientHeight } = node;
    if (clientWidth === 0) return;
    const made = new uPlot(leaving(options(clientWidth, clientHeight)), data, node);
    plot.current = made;
    onMake?.(made);
    const resize = new ResizeObserver(() => {
      if (node.clientWidth > 0)
        made.setSize({ width: node.clientWidth, height: node.clientHeight });
    });
    resize.observe(node);
    // What was drawn before its font came is drawn again.
    const letters = () => made.redraw(false);
    document.fonts.addEventListener('loadingdone', letters);
    return () => {
      document.fonts.removeEventListener('loadingdone', letters);
      resize.disconnect();
      made.destroy();
    };
  }, [watch, theme, data]);

  return (
    <figure class="fig" aria-label={label}>
      <div
        class="plot"
        ref={box}
        role="application"
        aria-label={label}
        tabIndex={0}
        onKeyDown={onKey}
      />
      {children}
    </figure>
  );
}

/** Axes as the rest of the page: small, grey, hair-thin grid. */
export function axis(more: Partial<uPlot.Axis>): uPlot.Axis {
  return {
    stroke: ink('text-3'),
    font: '10px Inter, system-ui, sans-serif',
    grid: { stroke: ink('line'), width: 1 },
    ticks: { show: false },
    gap: 4,
    ...more,
  };
}
