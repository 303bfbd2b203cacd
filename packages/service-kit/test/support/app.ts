/** An HTTP server of the kit without a port, and what it wrote to its log. */
import { pino } from "pino";
import { createHttpServer, type HttpServer, type HttpServerOptions } from "../../src/index.ts";

export interface TestApp {
  app: HttpServer;
  logged: () => string;
}

export function testApp(options: Partial<HttpServerOptions> = {}): TestApp {
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const app = createHttpServer({
    log,
    lifecycle: { state: "running" },
    bodyLimit: 1024,
    alwaysOn: [],
    ...options,
  });
  return { app, logged: () => lines.join("") };
}
