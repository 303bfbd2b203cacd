/** Starts the API: its connections, its app, its port. */
import { JobProducer } from "@svc/job-queue";
import { type Context, createRedis, InnerClient, type Running } from "@svc/service-kit";
import { createIdentityProvider } from "./auth/provider.ts";
import { RunningPrograms } from "./programmatic/cancel.ts";
import { buildApi } from "./server.ts";

export async function startApi(context: Context): Promise<Running> {
  const { config, log } = context;
  const identity = await createIdentityProvider(config, log);
  const redis = createRedis(config, log, { use: "commands" });
  const subscriber = createRedis(config, log, { use: "blocking" });
  const fileServer = new InnerClient({
    baseUrl: config.FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
  });
  const jobs = new JobProducer(config, log, redis);
  const running = new RunningPrograms(redis);
  await Promise.all([jobs.listen(subscriber), running.listen(subscriber)]);
  const app = await buildApi({ ...context, redis, fileServer, jobs, identity, running });
  await app.listen({ port: config.SERVICE_PORT, host: config.SERVICE_HOST });
  return {
    stop: async () => {
      await app.close();
      identity.close();
      await jobs.close();
      await fileServer.close();
      subscriber.disconnect();
      redis.disconnect();
    },
  };
}
