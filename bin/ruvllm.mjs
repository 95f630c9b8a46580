#!/usr/bin/env node
import './require-node.mjs';
import { existsSync } from 'fs';

const main = new URL('../dist/lib/cli.js', import.meta.url);
if (existsSync(main)) {
  import(main.href);
} else {
  console.error('error: ruvllm is not built yet\nnext: npm start, or npm run build');
  process.exitCode = 1;
}
