/** Caddy and nginx for the tests of a file, with a certificate that is made before the first of them. */
import type { Api } from "@svc/test-kit/system/api";
import { afterAll, beforeAll } from "vitest";
import { type Certificate, makeCertificate, type ReverseProxy, startCaddy, startNginx } from "./proxies.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

/** Name of the site in the certificate. */
export const SITE = "code.example.com";

/** In front of the API on a port. */
export type StartProxy = (apiPort: number) => Promise<ReverseProxy>;

export function useProxies(api: Api): {
  starts: Record<"caddy" | "nginx", StartProxy>;
  certificate: () => Certificate;
} {
  let certificate: Certificate;
  beforeAll(async () => {
    certificate = await makeCertificate(api, SITE);
  });
  return {
    starts: { caddy: startCaddy, nginx: (port) => startNginx(port, certificate) },
    certificate: () => certificate,
  };
}

/** A proxy in front of a server of the tests of a block. `onStart` is called before the first of them. */
export function useUpstream(
  start: StartProxy,
  onStart: (made: { upstream: Upstream; proxy: ReverseProxy }) => void,
): void {
  let upstream: Upstream | undefined;
  let proxy: ReverseProxy | undefined;
  beforeAll(async () => {
    upstream = await startUpstream();
    proxy = await start(upstream.port);
    onStart({ upstream, proxy });
  });
  afterAll(async () => {
    await proxy?.stop();
    await upstream?.stop();
  });
}
