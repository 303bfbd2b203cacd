/**
 * The only process of a guest besides jaild, started by guest/init.c as root. It starts jaild, drops its privileges, and runs an ordinary runner
 * on the guest's own loopback. Requests to the runner arrive over the first channel (descriptor 3). Its requests to the gateway leave over the
 * second one (descriptor 4).
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect, createServer, Socket } from "node:net";
import { dirname } from "node:path";
import process from "node:process";
import { JAILD, JAILD_ENVIRONMENT, jaildCommand } from "@svc/cli/components";
import { containerInstance } from "@svc/cli/containers/place";
import { userOf } from "@svc/cli/users";
import { startRunner } from "@svc/runner/start";
import { runComponent } from "@svc/service-kit";
import { join } from "../channel/bridge.ts";
import { Channel } from "../channel/channel.ts";
import { readPreface } from "../channel/preface.ts";

const [TO_RUNNER, TO_GATEWAY] = [3, 4];
const LOOPBACK = "127.0.0.1";

const requests = new Socket({ fd: TO_RUNNER, allowHalfOpen: true });
const env = await readPreface(requests);
for (const name of Object.keys(process.env)) if (/^(SVC|SANDBOX)_/.test(name)) delete process.env[name];
Object.assign(process.env, env);

const instance = containerInstance(process.env);
mkdirSync(dirname(instance.toolDirectory), { recursive: true });
const view = { enter: [], close: () => undefined };
const [, ...options] = jaildCommand({ instance, caller: process.env, view });
const jaild = spawn(JAILD, options, { stdio: "inherit", env: JAILD_ENVIRONMENT });
const over = () => process.exit(1);
jaild.once("exit", over);

const { uid, gid } = userOf("runner", instance);
process.setgroups?.([]);
process.setgid?.(gid);
process.setuid?.(uid);

const gateway = new Channel(new Socket({ fd: TO_GATEWAY, allowHalfOpen: true }), { onEnd: over });
createServer({ allowHalfOpen: true }, (connection) => join(connection, gateway.open())).listen(
  Number(env.SANDBOX_ALLOWED_LOCAL_NETWORK_PORT),
  LOOPBACK,
);
new Channel(requests, {
  onStream: (stream) =>
    join(stream, connect({ port: Number(env.PORT), host: LOOPBACK, allowHalfOpen: true })),
  onEnd: over,
});

await runComponent("runner", (context) => startRunner(context, { mayEnd: true }));
