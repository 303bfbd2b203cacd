/** Starts the cluster and one gateway for all tests of the `s3` project, and ends them after the last. */
import type { TestProject } from "vitest/node";
import { startCluster } from "./cluster.ts";
import { startGateway } from "./gateway.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of the cluster, for tests that start their own gateways. */
    s3Directory: string;
    /** Address of the gateway that all tests share. Nobody ends it. */
    s3Endpoint: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startCluster();
  try {
    const gateway = await startGateway(cluster.directory);
    project.provide("s3Directory", cluster.directory);
    project.provide("s3Endpoint", gateway.endpoint);
    return async () => {
      await gateway.kill();
      await cluster.stop();
    };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
