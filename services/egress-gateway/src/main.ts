import { runComponent } from "@svc/service-kit";
import { startGateway } from "./server.ts";

await runComponent("egress-gateway", startGateway);
