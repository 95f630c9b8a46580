// npm run compare:checkpoints -- FOLDER: compares converted checkpoints with Hugging Face's transformers.
import { ensureInstalled } from './setup.mjs';
import { runTool } from './tools.mjs';

ensureInstalled();
process.exitCode = await runTool('bench/compare-checkpoints.ts', process.argv.slice(2));
