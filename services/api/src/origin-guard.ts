/**
 * Without authentication only programs on this machine may call. A web page is not such a program, but it can reach the API through the
 * browser, by this machine's address or by DNS rebinding. So the Host and, if present, the Origin of every request must be loopback or
 * listed in SVC_ALLOWED_HOSTS. A request that a browser sends without an Origin, as for an image, must not come from another site; a
 * link that a visitor follows may. Looks only at headers.
 */
import { ServiceError } from "@svc/contracts";
import { type Config, type FastifyRequest, type HttpServer, isLoopback } from "@svc/service-kit";

/** To be called before authentication and routes are registered. */
export function originGuard(app: HttpServer, config: Config): void {
  const allowed = new Set(config.SVC_ALLOWED_HOSTS);
  const isAllowed = (name: string | undefined) =>
    name !== undefined && (isLoopback(name) || allowed.has(name));
  app.addHook("onRequest", (request, _reply, done) => {
    const { host, origin } = request.headers;
    const name = nameOf(`http://${host}`);
    if (!isAllowed(name)) return done(refused("The Host of the request is not this machine."));
    if (origin === undefined) return done(isOfOtherPage(request, name) ? refused(OTHER_PAGE) : undefined);
    done(isAllowed(nameOf(origin)) ? undefined : refused("The Origin of the request is not this machine."));
  });
}

/** The host name or address of an origin, in lower case and without a port; undefined for a text that is not an origin. */
function nameOf(origin: string): string | undefined {
  const url = URL.parse(origin);
  const isOrigin =
    url !== null && url.username + url.password + url.search + url.hash === "" && url.pathname === "/";
  return isOrigin && url.hostname !== "" ? url.hostname : undefined;
}

/** Uses Fetch metadata headers, which only browsers send. Other ports of loopback are the same site, and belong to this machine. */
function isOfOtherPage({ method, headers }: FastifyRequest, host: string | undefined): boolean {
  const site = headers["sec-fetch-site"];
  const isOther = site === "cross-site" || (site === "same-site" && !isLoopback(host ?? ""));
  const isLink =
    method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  return isOther && !isLink;
}

const OTHER_PAGE = "The request is of a page of another site.";

function refused(why: string): ServiceError {
  return new ServiceError(
    "origin_not_allowed",
    `${why} Without authentication only programs of this machine may call; SVC_ALLOWED_HOSTS lists further names.`,
  );
}
