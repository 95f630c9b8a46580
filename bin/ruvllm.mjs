#!/usr/bin/env node
import './require-node.mjs';
import { existsSync } from 'fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) {
  import(main.href);
} else {
  console.error('error: ruvllm is not built yet\nnext: npm start, or npm run build');
  process.exitCode = 1;
}
