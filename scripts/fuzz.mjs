// npm run fuzz -- [TARGET …] [--seconds 60] [--seed 1] [--save]: runs fuzz/fuzz.ts.
import { ensureInstalled } from './setup.mjs';
import { runTool } from './tools.mjs';

ensureInstalled();
process.exitCode = await runTool('fuzz/fuzz.ts', process.argv.slice(2));
