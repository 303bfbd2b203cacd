/**
 * Where nobody has to prove who they are, only programs of this machine may call, and a web page is none: it reaches the
 * API through the browser, by its own address or by a name that it had pointed here. So the Host and, where there is one,
 * the Origin of every request must be loopback or listed in SVC_ALLOWED_HOSTS. Looks at headers alone.
 */
import { ServiceError } from "@svc/contracts";
import { type Config, type HttpServer, isLoopback } from "@svc/service-kit";

/** To be called before authentication and routes are registered. */
export function originGuard(app: HttpServer, config: Config): void {
  const allowed = new Set(config.SVC_ALLOWED_HOSTS);
  const isAllowed = (name: string | undefined) =>
    name !== undefined && (isLoopback(name) || allowed.has(name));
  app.addHook("onRequest", (request, _reply, done) => {
    const { host, origin } = request.headers;
    if (!isAllowed(nameOf(`http://${host}`))) return done(refused("Host"));
    if (origin !== undefined && !isAllowed(nameOf(origin))) return done(refused("Origin"));
    done();
  });
}

/** The name or address of an origin, in lower case and without a port; undefined for what is none. */
function nameOf(origin: string): string | undefined {
  const url = URL.parse(origin);
  const isOrigin =
    url !== null && url.username + url.password + url.search + url.hash === "" && url.pathname === "/";
  return isOrigin && url.hostname !== "" ? url.hostname : undefined;
}

function refused(header: "Host" | "Origin"): ServiceError {
  return new ServiceError(
    "origin_not_allowed",
    `The ${header} of the request is not this machine. Without authentication only its own programs may call; SVC_ALLOWED_HOSTS lists further names.`,
  );
}
