/** A request whose head has arrived and whose body has not, for tests of servers that stop meanwhile. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { createConnection } from "node:net";
import { json } from "node:stream/consumers";

/** Resolves when the server has read the head; `finish` sends the body and answers with status and error code. */
export async function beginPost(url: string, headers: Record<string, string>) {
  const sent = request(url, {
    method: "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      "transfer-encoding": "chunked",
      expect: "100-continue",
      ...headers,
    },
  });
  sent.flushHeaders();
  await once(sent, "continue");
  return {
    finish: async (body: unknown): Promise<string> => {
      sent.end(JSON.stringify(body));
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      return `${answer.statusCode} ${((await json(answer)) as { error?: string }).error}`;
    },
  };
}

/** Whether nothing listens at an address any more. */
export async function refusesConnections(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  try {
    await once(socket, "connect");
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}
