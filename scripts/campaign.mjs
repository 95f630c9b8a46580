// npm run campaign -- [PART …] [--minutes N] [--seed S]: runs campaign/campaign.ts.
import { ensureInstalled } from './setup.mjs';
import { runTool } from './tools.mjs';

ensureInstalled();
process.exitCode = await runTool('campaign/campaign.ts', process.argv.slice(2));
