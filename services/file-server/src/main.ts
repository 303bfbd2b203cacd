import { runComponent } from "@svc/service-kit";
import { startFileServer } from "./start.ts";

await runComponent("file-server", startFileServer);
