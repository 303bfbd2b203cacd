import { runComponent } from "@svc/service-kit";
import { startWorker } from "./server.ts";

await runComponent("worker", startWorker);
