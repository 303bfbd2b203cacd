import { runComponent } from "@svc/service-kit";
import { startToolCallServer } from "./server.ts";

await runComponent("tool-call-server", startToolCallServer);
