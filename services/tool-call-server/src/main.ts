import { runComponent } from "@svc/service-kit";
import { startToolCallServer } from "./start.ts";

await runComponent("tool-call-server", startToolCallServer);
