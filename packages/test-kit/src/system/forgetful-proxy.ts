/** Stands before an HTTP server and hands everything on, but loses the answers to some requests after they were carried out. */
import { once } from "node:events";
import { createServer, request } from "node:http";

export interface ForgetfulProxy {
  endpoint: string;
  /** How many answers were lost. */
  lost: () => number;
  stop: () => Promise<void>;
}

export async function startForgetfulProxy(
  target: string,
  isLost: (method: string, path: string) => boolean,
): Promise<ForgetfulProxy> {
  let lost = 0;
  const server = createServer((incoming, answer) => {
    const { method = "", url = "", headers } = incoming;
    const forwarded = request(new URL(url, target), { method, headers }, (response) => {
      if (isLost(method, url)) {
        lost++;
        response.resume().once("end", () => incoming.socket.destroy());
        return;
      }
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    forwarded.on("error", () => incoming.socket.destroy());
    incoming.pipe(forwarded);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    lost: () => lost,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
