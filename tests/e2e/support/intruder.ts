/**
 * A program that somebody runs who has taken over a component: as its user, with its environment, on its network. It is
 * started by root and gives that up for good before it tries anything. Reads tries from its standard input and prints
 * for each `done` or the code of the error.
 */
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";

export type Try =
  | { connect: string }
  | { read: string }
  | { list: string }
  | { write: string }
  | { signal: number };

async function attempt(attempted: Try): Promise<void> {
  if ("connect" in attempted) {
    const socket = createConnection(attempted.connect);
    await once(socket, "connect").finally(() => socket.destroy());
  } else if ("read" in attempted) readFileSync(attempted.read);
  else if ("list" in attempted) readdirSync(attempted.list);
  else if ("write" in attempted) writeFileSync(attempted.write, "mine", { flag: "r+" });
  else process.kill(attempted.signal, 0);
}

const uid = Number(process.argv[2]);
if (!(uid > 0)) throw new Error("the user must not be root");
process.setgroups?.([]);
process.setgid?.(uid);
process.setuid?.(uid);
const results: string[] = [];
for (const attempted of JSON.parse(await text(process.stdin)) as Try[]) {
  results.push(
    await attempt(attempted).then(
      () => "done",
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    ),
  );
}
process.stdout.write(JSON.stringify({ uid: process.getuid?.(), results }));
