import { connect } from "node:net";
import fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clientGone } from "../../src/http/client-gone.ts";

let app: FastifyInstance;
let begun: PromiseWithResolvers<AbortSignal>;
let closed: PromiseWithResolvers<AbortSignal | undefined>;

beforeEach(async () => {
  app = fastify();
  begun = Promise.withResolvers();
  closed = Promise.withResolvers();
  app.get("/answered", async (_request, reply) => {
    reply.raw.once("close", () => closed.resolve(undefined));
    begun.resolve(clientGone(reply, new Error("gone")));
    return "answer";
  });
  app.get("/waiting", async (_request, reply) => {
    const signal = clientGone(reply, new Error("gone"));
    begun.resolve(signal);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    closed.resolve(clientGone(reply, new Error("late")));
    return "nobody reads this";
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(() => app.close());

describe("the signal of a client that is gone", () => {
  test("is aborted with its reason when the connection closes first, and at once when asked for later", async () => {
    const { port } = app.server.address() as { port: number };
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /waiting HTTP/1.1\r\nhost: x\r\n\r\n");
    const signal = await begun.promise;
    expect(signal.aborted).toBe(false);
    socket.destroy();
    expect((await closed.promise)?.reason).toEqual(new Error("late"));
    expect(signal.reason).toEqual(new Error("gone"));
  });

  test("stays quiet when the answer was written whole", async () => {
    const { port } = app.server.address() as { port: number };
    expect(await (await fetch(`http://127.0.0.1:${port}/answered`)).text()).toBe("answer");
    await closed.promise;
    expect((await begun.promise).aborted).toBe(false);
  });
});
