/** A forward proxy that makes tunnels, as a company has one, on a free port of loopback. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

export interface Tunnels {
  /** http://host:port. */
  proxy: string;
  /** host:port of each tunnel that was asked for. */
  asked: string[];
  stop: () => Promise<void>;
}

export async function startTunnels(): Promise<Tunnels> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on("connect", ({ url = "" }, client: Socket, first: Buffer) => {
    asked.push(url);
    const { hostname, port } = new URL(`http://${url}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      upstream.write(first);
      upstream.pipe(client).pipe(upstream);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one
        .on("error", () => other.destroy())
        .once("close", () => {
          sockets.delete(one);
          other.destroy();
        });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { proxy: `http://127.0.0.1:${port}`, asked, stop };
}
