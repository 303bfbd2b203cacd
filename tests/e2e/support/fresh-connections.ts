import { type Answer, Api, type SendOptions } from "@svc/test-kit/system/api";

/** A connection for each request: what is sent on one that is about to be closed was not accepted. */
export class FreshConnections extends Api {
  override send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    return super.send(method, path, { ...options, headers: { ...options.headers, connection: "close" } });
  }
}
