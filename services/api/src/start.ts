/** Starts the API: its connections, its app, its port. */
import { JobProducer } from "@svc/job-queue";
import {
  Cancellations,
  type Context,
  createRedis,
  InnerClient,
  listenWhen,
  type Running,
  tokenTo,
} from "@svc/service-kit";
import { createIdentityProvider } from "./auth/provider.ts";
import { PROGRAM_CANCELLATIONS } from "./programmatic/labels.ts";
import { buildApi } from "./server.ts";

/** How long requests wait for a file server that refuses connections: a replaced one is back within this time. */
const REPLACED_MS = 5000;

export async function startApi(context: Context): Promise<Running> {
  const { config, log } = context;
  const identity = await createIdentityProvider(config, log);
  const redis = createRedis(config, log, { use: "commands" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const fileServer = new InnerClient({
    baseUrl: config.FILE_SERVER_URL,
    internalToken: tokenTo(config, "api", "file-server"),
    unreachable: "storage_unavailable",
    refusedMs: REPLACED_MS,
    tls: context.tls,
  });
  const jobs = new JobProducer(config, log, redis);
  const cancellations = new Cancellations(redis, PROGRAM_CANCELLATIONS);
  const app = await buildApi({ ...context, redis, fileServer, jobs, identity, cancellations });
  const address = { port: config.SERVICE_PORT, host: config.SERVICE_HOST };
  await listenWhen(Promise.all([jobs.listen(subscriber), cancellations.listen(subscriber)]), () =>
    app.listen({ ...address, ...inheritedSocket(process.argv) }),
  );
  return {
    stop: async () => {
      const grace = setTimeout(() => jobs.stop(), config.SHUTDOWN_GRACE_MS);
      await app.close();
      clearTimeout(grace);
      identity.close();
      await jobs.close();
      await fileServer.close();
      subscriber.disconnect();
      redis.disconnect();
    },
  };
}

/**
 * `listen=DESCRIPTOR` among the arguments: a socket bound to the API's address. Its owner keeps it open when this process
 * ends, so that connections wait for the next process instead of being refused.
 */
function inheritedSocket(argv: readonly string[]): { fd?: number } {
  const [, descriptor] = argv.map((word) => /^listen=(\d{1,3})$/.exec(word)).find(Boolean) ?? [];
  return descriptor === undefined ? {} : { fd: Number(descriptor) };
}
