import { runComponent } from "@svc/service-kit";
import { startWorker } from "./start.ts";

await runComponent("worker", startWorker);
