import { runComponent } from "@svc/service-kit";
import { startRunner } from "./server.ts";

await runComponent("runner", startRunner);
