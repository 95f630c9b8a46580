// Imported first, and everything else dynamically: an old Node refuses to parse newer syntax anywhere in the static graph, and
// prints a stack instead of the sentence below. Keep this file readable for Node 12.
import { readFileSync } from 'fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [minimum] = /\d+\.\d+/.exec(manifest.engines.node);
const [major, minor] = minimum.split('.').map(Number);
const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number);

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  console.error(
    `error: RuvLLM requires Node ${minimum} or newer; this is Node ${process.versions.node}.\n` +
      'next: install a newer one from https://nodejs.org, or run "nvm install --lts"',
  );
  process.exit(1);
}
