import type { CommandRunner } from '../command.ts';
import { openHub } from '../open-hub.ts';

/** Saves a model under a second name; both use the same file. */
export const run: CommandRunner = async ({ output, args }) => {
  const [source, name] = args as [string, string];
  const hub = openHub();
  await hub.resolveModelPath(source);
  const saved = await hub.saved.find(source);
  const plain = { from: source, system: null, parameters: {}, adapter: null, messages: [] };
  await hub.saved.save(name, { ...(saved ?? plain), createdMs: Date.now() });
  output.document({ source, name });
  output.lines(`copied ${source} to ${name}`);
};
