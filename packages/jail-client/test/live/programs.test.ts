import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, runJob } from "@svc/test-kit/jail/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

/** Ordinary programs must work: what the confinement takes away, nobody may miss. */
describe("Python", () => {
  it.each([
    [
      "threads and a pool",
      "from concurrent.futures import ThreadPoolExecutor as P\nprint(sum(P(8).map(lambda x: x * x, range(100))))",
      "328350\n",
    ],
    [
      "asyncio subprocesses",
      "import asyncio\nasync def m():\n  p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)\n  print((await p.communicate())[0].decode(), end='')\nasyncio.run(m())",
      "hi\n",
    ],
    [
      "asyncio streams over a unix socket",
      "import asyncio\nasync def h(r, w): w.write(await r.readline()); w.close()\nasync def m():\n  s = await asyncio.start_unix_server(h, '/tmp/s')\n  r, w = await asyncio.open_unix_connection('/tmp/s'); w.write(b'echo\\n'); print((await r.readline()).decode(), end='')\nasyncio.run(m())",
      "echo\n",
    ],
    [
      "sqlite",
      "import sqlite3\nc = sqlite3.connect('d.db'); c.execute('create table t(x)'); c.execute('insert into t values (7)'); c.commit()\nprint(c.execute('select x from t').fetchone()[0])",
      "7\n",
    ],
    ["temporary files", "import tempfile\nwith tempfile.TemporaryDirectory() as d: print(d[:5])", "/tmp/\n"],
    [
      "ssl contexts and hashes",
      "import ssl, hashlib\nssl.create_default_context(); print(hashlib.sha256(b'').hexdigest()[:8])",
      "e3b0c442\n",
    ],
    [
      "getpass, locale, time zones",
      "import getpass, locale, datetime\nprint(getpass.getuser(), datetime.datetime.now().astimezone().utcoffset())",
      "sandbox 0:00:00\n",
    ],
    [
      "numpy and pandas",
      "import numpy as np, pandas as pd\nprint(int(np.ones((50, 50)).dot(np.ones((50, 50))).sum()), pd.DataFrame({'a': [1, 2]}).a.sum())",
      "125000 3\n",
    ],
    [
      "a figure",
      "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('f.png'); import os; print(os.path.getsize('f.png') > 1000)",
      "True\n",
    ],
    [
      "signals and timers",
      "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nprint(signal.sigwait([signal.SIGALRM]).name) if not signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]) else 0",
      "SIGALRM\n",
    ],
    [
      "shared memory",
      "from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=100); m.buf[0] = 5; n = s.SharedMemory(m.name); print(n.buf[0]); n.close(); m.close(); m.unlink()",
      "5\n",
    ],
  ])("%s", async (_name, program, expected) => {
    const { out, err } = await runJob(jaild, { argv: ["/usr/bin/python3", "-c", program] });
    expect([out, err]).toEqual([expected, ""]);
  });

  it.each(["fork", "spawn", "forkserver"])("multiprocessing by %s", async (method) => {
    const files = {
      "main.py": `import multiprocessing as mp
def square(x): return x * x
if __name__ == "__main__":
    mp.set_start_method("${method}")
    with mp.Pool(3) as pool: print(sum(pool.map(square, range(10))))
`,
    };
    const { out, err } = await runJob(jaild, { argv: ["/usr/bin/python3", "main.py"], files });
    expect([out, err]).toEqual(["285\n", ""]);
  });
});

describe("Node", () => {
  it.each([
    [
      "timers, workers and child processes",
      "const {Worker}=require('worker_threads');const {execFileSync}=require('child_process');const w=new Worker('require(\"worker_threads\").parentPort.postMessage(6*7)',{eval:true});w.on('message',m=>console.log(m,execFileSync('echo',['hi']).toString().trim()))",
      "42 hi\n",
    ],
    [
      "files, streams and compression",
      "const fs=require('fs'),z=require('zlib');fs.writeFileSync('a',z.gzipSync('x'.repeat(1e5)));console.log(z.gunzipSync(fs.readFileSync('a')).length)",
      "100000\n",
    ],
    [
      "the machine",
      "const os=require('os');console.log(os.hostname(),os.cpus().length>0,os.homedir(),os.userInfo().username)",
      "sandbox true /mnt/data sandbox\n",
    ],
    [
      "a refused network",
      "require('net').connect(80,'127.0.0.1').on('error',e=>console.log(e.code))",
      "EPERM\n",
    ],
    [
      "a socket of its own",
      "const n=require('net');const s=n.createServer(c=>c.end('yes')).listen('/tmp/n',()=>n.connect('/tmp/n').on('data',d=>{console.log(String(d));s.close()}))",
      "yes\n",
    ],
  ])("%s", async (_name, program, expected) => {
    const { out, err } = await runJob(jaild, { argv: ["/usr/bin/node", "-e", program] });
    expect([out, err]).toEqual([expected, ""]);
  });
});

describe("the shell", () => {
  it.each([
    ["process substitution and pipes", "diff <(seq 3) <(seq 3) && seq 100 | tail -1", "100\n"],
    ["GNU timeout", "timeout 0.1 sleep 5; echo $?", "124\n"],
    ["background jobs and wait", "sleep 0.1 & sleep 0.05 & wait; echo $? end", "0 end\n"],
    [
      "killing its own group",
      "setsid --wait bash -c 'trap \"echo trapped\" TERM; kill 0'; echo after",
      "trapped\nafter\n",
    ],
    ["archives", "mkdir d; echo x > d/f; tar czf a.tgz d; rm -r d; tar xzf a.tgz; cat d/f", "x\n"],
    [
      "git",
      "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m m && git log --oneline | wc -l",
      "1\n",
    ],
    [
      "copies with times and modes",
      "echo x > a; chmod 640 a; touch -d 2001-02-03 a; cp -a a b; stat -c '%a %y' b | cut -c1-14",
      "640 2001-02-03\n",
    ],
    ["here documents and /dev/fd", "cat /dev/fd/3 3<<< text", "text\n"],
    [
      "awk, sed, jq, sort",
      "echo '{\"a\":[3,1]}' | jq -c '.a|sort' | sed 's/,/;/' | awk '{print $1}'",
      "[1;3]\n",
    ],
    ["its own limits", "ulimit -n 64; ulimit -n; ulimit -c", "64\n0\n"],
  ])("%s", async (_name, script, expected) => {
    const { out } = await bash(jaild, script);
    expect(out).toBe(expected);
  });

  it("runs a script and a binary that lie in the workspace", async () => {
    const { out } = await bash(
      jaild,
      "printf '#!/usr/bin/env python3\\nprint(1)\\n' > s; cp /bin/echo e; chmod +x s; ./s; ./e 2",
    );
    expect(out).toBe("1\n2\n");
  });
});
