/** What programs do in real life works in a jail as anywhere: the counterpart of everything that is refused there. */

import { Api, output } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";
import { NODE, PYTHON, SHELL } from "./support/ordinary-programs.ts";

const api = new Api(sharedSystem().url);

const ORDINARY_END = { stderr: "", code: 0, signal: null, message: null, status: null };

async function works(lang: string, code: string, stdout: string) {
  const answer = await api.exec({ lang, code });
  expect(answer).toMatchObject({ ...ORDINARY_END, stdout });
  return answer;
}

describe("Python", () => {
  test.each(Object.entries(PYTHON))("%s", async (_name, { code, stdout }) => {
    await works("py", code, stdout);
  });

  test.each(["fork", "spawn", "forkserver"])("process pools, queues and managers by %s", async (method) => {
    const code = `
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor

def square(n):
    return n * n

def serve(queue, results, lock, total):
    while (n := queue.get()) is not None:
        with lock:
            total.value += n
        results.append(n)

if __name__ == "__main__":
    context = mp.get_context("${method}")
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        print(sum(pool.map(square, range(10))))
    with context.Manager() as manager:
        results, queue, lock, total = manager.list(), context.Queue(), context.Lock(), context.Value("i", 0)
        workers = [context.Process(target=serve, args=(queue, results, lock, total)) for _ in range(3)]
        for worker in workers: worker.start()
        for n in [*range(20), None, None, None]: queue.put(n)
        for worker in workers: worker.join()
        print(sorted(results) == list(range(20)), total.value, [worker.exitcode for worker in workers])
`;
    await works("py", code, "285\nTrue 190 [0, 0, 0]\n");
  });

  test("a database in the workspace comes back as an output and can be read by the next program", async () => {
    const write = `
import sqlite3
with sqlite3.connect("shop.db") as db:
    db.executescript("create table sales (shop, sum); create virtual table notes using fts5(text);")
    db.executemany("insert into sales values (?, ?)", [("a", 1.5), ("b", 2), ("a", 3)])
    db.execute("insert into notes values ('the quick brown fox')")`;
    const database = output(await works("py", write, ""), "shop.db");
    const read = `
import sqlite3
db = sqlite3.connect("shop.db")
print(db.execute("select shop, sum(sum) from sales group by shop").fetchall(), db.execute("select text from notes where notes match 'quick'").fetchone())`;
    const { id, storage_session_id, name } = database;
    const answer = await api.exec({ lang: "py", code: read, files: [{ id, storage_session_id, name }] });
    expect(answer).toMatchObject({
      ...ORDINARY_END,
      stdout: "[('a', 4.5), ('b', 2)] ('the quick brown fox',)\n",
    });
  });

  test("NumPy sorts numbers of every type, by value and by index, however many", async () => {
    const code = `
import numpy as np
numbers = np.random.default_rng(1)
for count in [*range(1, 70), 128, 129, 256, 257, 1000]:
    for type in ["int16", "int32", "int64", "uint64", "float32", "float64"]:
        these = numbers.integers(0, 10_000, count).astype(type)
        expected = sorted(these.tolist())
        assert np.sort(these).tolist() == expected, (count, type)
        assert these[np.argsort(these)].tolist() == expected, (count, type)
        assert these[np.argpartition(these, count // 2)][count // 2] == expected[count // 2], (count, type)
print("sorted")`;
    await works("py", code, "sorted\n");
  });

  test("plots come back as images, saved ones and shown ones", async () => {
    const code = `
import matplotlib.pyplot as plt, numpy as np, pandas as pd, seaborn as sns
table = pd.DataFrame({"x": np.arange(50), "y": np.sin(np.arange(50) / 5), "kind": ["é", "ß"] * 25})
sns.lineplot(table, x="x", y="y", hue="kind")
plt.savefig("sine.svg")
plt.close()
plt.hist(table.y)
plt.show()`;
    const answer = await works("py", code, "");
    const png = await api.bytes(output(answer, "plot_1.png"));
    expect(png.subarray(1, 4).toString("latin1")).toBe("PNG");
    expect((await api.bytes(output(answer, "sine.svg"))).toString()).toContain("<svg");
  });
});

describe("the shell", () => {
  test.each(Object.entries(SHELL))("%s", async (_name, { code, stdout }) => {
    await works("bash", code, stdout);
  });
});

describe("Node.js", () => {
  test.each(Object.entries(NODE))("%s", async (_name, { code, stdout }) => {
    await works("node", code, stdout);
  });
});
