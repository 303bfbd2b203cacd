/** In the runner's place: it has the runner's configuration, identity and routes. */
import { runComponent } from "@svc/service-kit";
import { startLauncher } from "./start.ts";

await runComponent("runner", startLauncher);
