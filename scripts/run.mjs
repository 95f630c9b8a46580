// node scripts/run.mjs NAME …: runs scripts/NAME.mjs on a new enough Node. A separate file, because the scripts' imports are parsed
// before they could check anything.
import '../bin/require-node.mjs';
import { fileURLToPath } from 'url';

const script = new URL(`./${process.argv[2]}.mjs`, import.meta.url);
process.argv.splice(1, 2, fileURLToPath(script));
import(script.href);
