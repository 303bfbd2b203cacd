import { runComponent } from "@svc/service-kit";
import { startRunner } from "./start.ts";

await runComponent("runner", startRunner);
