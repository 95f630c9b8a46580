// npm run bench -- agents [--part NAME] [--development]: memory of agents. Each file of bench/agents is a part.
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** A part prints its tables and returns its figures. */
interface Part {
  measure(options: { readonly isDevelopment: boolean }): Promise<Record<string, number>>;
}

const { values } = parseArgs({
  options: { part: { type: 'string' }, development: { type: 'boolean', default: false } },
});
const folder = new URL('./agents/', import.meta.url);
const names = readdirSync(folder)
  .filter((file) => /^[a-z-]+\.(?:js|ts)$/.test(file))
  .map((file) => file.replace(/\.(?:js|ts)$/, ''))
  .sort();
if (values.part !== undefined && !names.includes(values.part)) {
  console.error(`error: no part ${values.part}; there are ${names.join(', ')}`);
  process.exit(2);
}
const figures: Record<string, number> = {};
for (const name of names) {
  if (values.part !== undefined && name !== values.part) continue;
  console.error(`${name} …`);
  const { measure } = (await import(new URL(`${name}.js`, folder).href)) as Part;
  Object.assign(figures, await measure({ isDevelopment: values.development }));
}
console.log(JSON.stringify(figures));
