/** In the runner's place: it has the runner's port, keys and routes. */
import { runComponent } from "@svc/service-kit";
import { startLauncher } from "./start.ts";

await runComponent("launcher", startLauncher);
