import { runComponent } from "@svc/service-kit";
import { startGateway } from "./start.ts";

await runComponent("egress-gateway", startGateway);
