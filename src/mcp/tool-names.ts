/** A tool and its server. */
export interface NamedTool {
  readonly server: string;
  readonly name: string;
}

/** The longest name that clients of OpenAI's API expect. */
const MAX_NAME_CHARS = 64;

const clean = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME_CHARS);

/**
 * The names that the model sees: the tool's own name where it is unique, otherwise with the name of its server. Two servers with a
 * tool of the same name both get the prefix, so that none can take the place of the other. Names in `taken` are never used.
 */
export function nameTools(tools: readonly NamedTool[], taken: ReadonlySet<string> = new Set()): readonly string[] {
  const counts = new Map<string, number>();
  for (const { name } of tools) counts.set(clean(name), (counts.get(clean(name)) ?? 0) + 1);
  const used = new Set(taken);
  return tools.map(({ server, name }) => {
    const own = clean(name);
    const isUnique = counts.get(own) === 1 && !taken.has(own);
    const base = isUnique ? own : clean(`${clean(server)}__${own}`);
    let visible = base;
    // Different characters may have been replaced by the same one.
    for (let number = 2; used.has(visible); number++) visible = `${base.slice(0, MAX_NAME_CHARS - 4)}_${number}`;
    used.add(visible);
    return visible;
  });
}
