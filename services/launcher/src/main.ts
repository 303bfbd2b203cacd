/** Entry point of the launcher. It takes the runner's place and has the runner's port, keys and routes. */
import { runComponent } from "@svc/service-kit";
import { startLauncher } from "./start.ts";

await runComponent("launcher", startLauncher);
