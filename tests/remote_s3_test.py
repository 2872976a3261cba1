#!/usr/bin/env python3
"""Object stores, from moto's server on this machine, which checks signatures as Amazon does.

$TENSORDIFF_MOTO names a Python that has moto and boto3; ./dev test makes one.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from remote_servers import free_port, run, skip_without, wait_for_port, write_safetensors

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = os.environ.get("TENSORDIFF_MOTO", str(ROOT / "build/remote-tools/bin/python"))
skip_without("moto", os.path.exists(PYTHON) and subprocess.run(
    [PYTHON, "-c", "import moto.server, boto3"], capture_output=True, check=False).returncode == 0)

MIB = 1 << 20
# Makes a user with keys, a bucket with files, and lets nobody in from then on who does not sign.
PREPARE = """
import json, pathlib, sys, boto3, urllib.request
endpoint, folder = sys.argv[1:]
free = dict(endpoint_url=endpoint, region_name="eu-west-1", aws_access_key_id="x",
            aws_secret_access_key="y")
iam = boto3.client("iam", **free)
iam.create_user(UserName="u")
key = iam.create_access_key(UserName="u")["AccessKey"]
rule = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
iam.put_user_policy(UserName="u", PolicyName="all", PolicyDocument=json.dumps(rule))
s3 = boto3.client("s3", **free)
s3.create_bucket(Bucket="models", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
for path in sorted(pathlib.Path(folder).rglob("*")):
    if path.is_file():
        s3.upload_file(str(path), "models", str(path.relative_to(folder)))
one = pathlib.Path(folder, "one.npy").read_bytes()
for i in range(12):
    s3.put_object(Bucket="models", Key=f"many/t{i:04}.npy", Body=one)
urllib.request.urlopen(urllib.request.Request(
    endpoint + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}))
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""


class S3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        data = cls.folder / "data"
        for name in "abc":
            (data / name).mkdir(parents=True)
        same = {"layers.0.w": os.urandom(2 * MIB)}
        last = os.urandom(MIB)
        write_safetensors(data / "a/model-00001-of-00002.safetensors", same)
        write_safetensors(data / "b/model-00001-of-00002.safetensors", same)
        write_safetensors(data / "a/model-00002-of-00002.safetensors", {"layers.1.w": last})
        write_safetensors(data / "b/model-00002-of-00002.safetensors",
                          {"layers.1.w": last[:-1] + b"?"})
        write_safetensors(data / "c/a b+c%&é.safetensors", {"w": b"123"})
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
        header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
        (data / "one.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
                                       + header + b"\x07")
        cls.data = data
        port = free_port()
        cls.endpoint = f"http://127.0.0.1:{port}"
        cls.server = subprocess.Popen(
            [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": "5"})  # Of one page; Amazon has 1,000.
        wait_for_port(port, cls.server)
        made = subprocess.run([PYTHON, "-c", PREPARE, cls.endpoint, str(data)],
                              capture_output=True, text=True, check=False, timeout=600)
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        cls.id, cls.secret = json.loads(made.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(timeout=60)
        cls.temporary.cleanup()

    def run_signed(self, *arguments, **options):
        environment = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "eu-west-1",
                       "AWS_ACCESS_KEY_ID": self.id, "AWS_SECRET_ACCESS_KEY": self.secret}
        done = run(*arguments, **{**environment, **options})
        self.assertNotIn(self.secret, done.stdout + done.stderr)
        return done

    def test_a_file(self):
        place = "s3://models/a/model-00002-of-00002.safetensors"
        self.assertIn("SAME", self.run_signed(
            self.data / "a/model-00002-of-00002.safetensors", place, check=0).stdout)

    def test_a_folder(self):
        done = self.run_signed(self.data / "a", "s3://models/a/", check=0)
        self.assertIn("2 pairs: 2 identical", done.stdout)
        self.run_signed("show", "s3://models/a", check=0)  # A folder without its '/'.

    def test_pages_of_a_listing(self):
        done = self.run_signed("show", "s3://models/many/", check=0)
        self.assertIn("12 tensors", done.stdout)

    def test_names_with_signs(self):
        self.run_signed("show", "s3://models/c/a b+c%&é.safetensors", check=0)
        self.run_signed("show", "s3://models/c/", check=0)

    def test_one_hash_is_not_read(self):
        done = self.run_signed("s3://models/a/", "s3://models/b/", check=1)
        self.assertIn("1 pair is identical by hash", done.stdout)

    def test_google_by_keys(self):
        done = run("show", "gs://models/a/", check=0, STORAGE_EMULATOR_HOST=self.endpoint,
                   GS_ACCESS_KEY_ID=self.id, GS_SECRET_ACCESS_KEY=self.secret)
        self.assertIn("2 tensors", done.stdout)

    def test_keys_from_files(self):
        keys, config = self.folder / "credentials", self.folder / "config"
        keys.write_text(f"[default]\naws_access_key_id = no\naws_secret_access_key = no\n[other]\n"
                        f"aws_access_key_id = {self.id}\naws_secret_access_key = {self.secret}\n")
        config.write_text(f"[profile other]\nregion = eu-west-1\nendpoint_url = {self.endpoint}\n")
        run("show", "s3://models/a/", check=0, AWS_PROFILE="other",
            AWS_SHARED_CREDENTIALS_FILE=str(keys), AWS_CONFIG_FILE=str(config))

    def test_who_is_not_let_in(self):
        refused = self.run_signed("show", "s3://models/a/", AWS_SECRET_ACCESS_KEY="wrong", check=2)
        self.assertIn("refuses access (403)", refused.stderr)
        self.assertNotIn("wrong", refused.stderr)

    def test_what_is_not_there(self):
        self.assertIn("no such file or folder",
                      self.run_signed("show", "s3://models/nothing", check=2).stderr)


if __name__ == "__main__":
    unittest.main()
