import { runComponent } from "@svc/service-kit";
import { startApi } from "./start.ts";

await runComponent("api", startApi);
