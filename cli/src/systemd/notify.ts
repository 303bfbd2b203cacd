/** Tells systemd that the service is ready, where it started this process as a service (Type=notify). */
import { Problem } from "../problem.ts";
import { run } from "../system/run.ts";

/** Uses systemd-notify because Node has no unix datagram sockets. It reports for its parent, which is the main process of the unit. */
export async function notifyReady(env: NodeJS.ProcessEnv): Promise<void> {
  if (!env.NOTIFY_SOCKET) return;
  const { code, tail } = await run(["systemd-notify", "--ready"], { env });
  if (code !== 0) throw new Problem("systemd-notify failed", tail.join("\n"));
}
