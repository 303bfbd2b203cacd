/** Caddy and nginx with the files of deploy/proxies, on free ports of loopback, in front of a running API. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { run } from "@svc/cli/system/run";
import { type Api, output } from "@svc/test-kit/system/api";
import { freePort } from "@svc/test-kit/system/free-ports";
import { until } from "@svc/test-kit/system/processes";
import { debianProgram } from "./debian-programs.ts";

export interface ReverseProxy {
  /** Address by plain HTTP, with /v1. */
  url: string;
  /** Port with TLS, where the proxy has one. */
  tlsPort?: number;
  stop: () => Promise<void>;
}

const START_MS = 20_000;

export const PROXY_FILES = {
  caddy: join(ROOT, "deploy/proxies/Caddyfile"),
  nginx: join(ROOT, "deploy/proxies/nginx.conf"),
};

/** The file as it is: it takes its addresses from the environment. */
export async function startCaddy(apiPort: number): Promise<ReverseProxy> {
  const program = await debianProgram("caddy", "usr/bin/caddy");
  const folder = mkdtempSync(join(tmpdir(), "svc-caddy-"));
  const port = await freePort();
  const config = join(folder, "Caddyfile");
  writeFileSync(config, `{\n\tadmin off\n\tauto_https off\n}\n\nimport ${PROXY_FILES.caddy}\n`);
  const env = {
    HOME: folder,
    SVC_SITE: `http://127.0.0.1:${port}`,
    SVC_API: `127.0.0.1:${apiPort}`,
  };
  return startPlain([program, "run", "--adapter", "caddyfile", "--config", config], port, { folder, env });
}

export interface SecureProxy {
  /** Address with the name of the site, without /v1. */
  url: string;
  /** File of the authority that has signed the certificate, PEM. */
  authority: string;
  stop: () => Promise<void>;
}

/** With TLS on all addresses of this machine, by a certificate that Caddy makes itself: the site's name leads nowhere else. */
export async function startSecureCaddy(apiPort: number, site: string): Promise<SecureProxy> {
  const program = await debianProgram("caddy", "usr/bin/caddy");
  const folder = mkdtempSync(join(tmpdir(), "svc-caddy-"));
  const port = await freePort();
  const config = join(folder, "Caddyfile");
  const own = ["admin off", "local_certs", "skip_install_trust", "auto_https disable_redirects"];
  writeFileSync(config, `{\n\t${own.join("\n\t")}\n}\n\nimport ${PROXY_FILES.caddy}\n`);
  const url = `https://${site}:${port}`;
  const authority = join(folder, "caddy/pki/authorities/local/root.crt");
  const env = {
    HOME: folder,
    XDG_DATA_HOME: folder,
    SVC_SITE: url,
    SVC_API: `127.0.0.1:${apiPort}`,
  };
  const health = [
    "--cacert",
    authority,
    "--connect-to",
    `${site}:${port}:127.0.0.1:${port}`,
    `${url}/v1/health`,
  ];
  const answers = async () => (await run(["curl", "-sf", "-o", "/dev/null", ...health])).code === 0;
  const command = [program, "run", "--adapter", "caddyfile", "--config", config];
  return { url, authority, stop: await start(command, { folder, env }, answers) };
}

/** A certificate and its key, PEM. */
export interface Certificate {
  cert: string | Buffer;
  key: string | Buffer;
}

/** Made by a program in a jail: the image has openssl, and the machine may have none. */
export async function makeCertificate(api: Api, site: string): Promise<Certificate> {
  const code = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \\
    -out cert.pem -days 2 -subj /CN=${site} -addext subjectAltName=DNS:${site} 2>&1`;
  const answer = await api.exec({ lang: "bash", code });
  const bytesOf = (name: string) => {
    const { id, storage_session_id } = output(answer, name);
    return api.bytes({ id, storage_session_id });
  };
  return { cert: await bytesOf("cert.pem"), key: await bytesOf("key.pem") };
}

/**
 * The file with other ports and certificate files; what listens on IPv6 with TLS listens here without TLS. `changes`: further texts of it
 * by what stands in their place.
 */
export async function startNginx(
  apiPort: number,
  { cert, key }: Certificate,
  changes: Readonly<Record<string, string>> = {},
): Promise<ReverseProxy> {
  const program = await debianProgram("nginx", "usr/sbin/nginx");
  const folder = mkdtempSync(join(tmpdir(), "svc-nginx-"));
  const [port, tlsPort, redirectPort] = [await freePort(), await freePort(), await freePort()];
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
  const site = replaced(readFileSync(PROXY_FILES.nginx, "utf8"), {
    "server 127.0.0.1:3112;": `server 127.0.0.1:${apiPort};`,
    "listen 443 ssl http2;": `listen 127.0.0.1:${tlsPort} ssl http2;`,
    "listen [::]:443 ssl http2;": `listen 127.0.0.1:${port};`,
    "listen 80;": `listen 127.0.0.1:${redirectPort};`,
    "listen [::]:80;": "",
    "/etc/ssl/svc/fullchain.pem": join(folder, "cert.pem"),
    "/etc/ssl/svc/privkey.pem": join(folder, "key.pem"),
    ...changes,
  });
  writeFileSync(join(folder, "site.conf"), site);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const main = [
    `daemon off; user root; pid ${folder}/nginx.pid; worker_processes 1;`,
    "events { worker_connections 512; }",
    `http { access_log off; ${temporary.join(" ")} include ${folder}/site.conf; }`,
  ];
  writeFileSync(join(folder, "nginx.conf"), `${main.join("\n")}\n`);
  const command = [program, "-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")];
  return { ...(await startPlain(command, port, { folder })), tlsPort };
}

/** Each text must be there: a change of the file that a test does not know would otherwise go untested. */
function replaced(text: string, by: Readonly<Record<string, string>>): string {
  return Object.entries(by).reduce((left, [from, to]) => {
    if (!left.includes(from)) throw new Error(`deploy/proxies/nginx.conf does not contain ${from}`);
    return left.replace(from, () => to);
  }, text);
}

interface Start {
  folder: string;
  env?: Record<string, string>;
}

async function startPlain(command: readonly string[], port: number, options: Start): Promise<ReverseProxy> {
  const url = `http://127.0.0.1:${port}/v1`;
  const answers = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  return { url, stop: await start(command, options, answers) };
}

/** The proxy ends with this process. Settles when it answers, with the function that ends it. */
async function start(
  command: readonly string[],
  { folder, env = {} }: Start,
  answers: () => Promise<boolean>,
): Promise<() => Promise<void>> {
  const child = spawn("/usr/bin/setpriv", ["--pdeathsig", "TERM", "--", ...command], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said = `${said}${chunk}`.slice(-4000);
  });
  const gone = once(child, "close");
  const stop = async () => {
    child.kill("SIGTERM");
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(
      async () => child.exitCode === null && (await answers()),
      START_MS,
      () => said,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
