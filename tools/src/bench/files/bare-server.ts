/**
 * The server that the file path is compared with: a bare Fastify server that stores and serves files in a folder. It has no
 * authentication, no form parser, no hash and no second process. It is as durable as the service: it syncs a file before a
 * rename shows it, and then syncs the directory. Runs as a process of its own; prints its address.
 */
import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import Fastify from "fastify";

const [folder = ""] = process.argv.slice(2);
const app = Fastify();
app.addContentTypeParser("application/octet-stream", (_request, _payload, done) => done(null));

app.post("/files", async (request) => {
  const id = randomUUID();
  const temporary = join(folder, `${id}.new`);
  await pipeline(request.raw, createWriteStream(temporary, { flags: "wx", flush: true }));
  await rename(temporary, join(folder, id));
  const directory = await open(folder);
  await directory.sync();
  await directory.close();
  return { id };
});

app.get<{ Params: { id: string } }>("/files/:id", async (request, reply) => {
  const path = join(folder, request.params.id);
  const { size } = await stat(path);
  reply.header("content-length", size).type("application/octet-stream");
  return reply.send(createReadStream(path));
});

console.log(await app.listen({ port: 0, host: "127.0.0.1" }));
