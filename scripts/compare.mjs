// npm run compare -- [options] [FILE.gguf …]: compares our tokens and logits with llama.cpp's.
import { ensurePeers } from './peers.mjs';
import { ensureInstalled } from './setup.mjs';
import { runTool } from './tools.mjs';

ensureInstalled();
process.exitCode = ensurePeers() ? await runTool('bench/compare.ts', process.argv.slice(2)) : 1;
