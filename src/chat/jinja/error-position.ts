const TAG_ENDS: Readonly<Record<string, string>> = { '{#': '#}', '{%': '%}', '{{': '}}' };

interface Tag {
  readonly start: number;
  readonly end: number;
}

/** Comments, statements and expressions, each as a whole. */
function findTags(source: string): readonly Tag[] {
  const tags: Tag[] = [];
  const opening = /\{[#%{]/g;
  for (let match = opening.exec(source); match !== null; match = opening.exec(source)) {
    const closing = source.indexOf(TAG_ENDS[match[0]]!, opening.lastIndex);
    const end = closing === -1 ? source.length : closing + 2;
    tags.push({ start: match.index, end });
    opening.lastIndex = end;
  }
  return tags;
}

/** `line L, column C`, both from 1. */
function describeOffset(source: string, offset: number): string {
  const lines = source.slice(0, offset).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

/** The first tag whose end the tokenizer does not reach; the tokenizer itself reports no position. */
export function locateTokenError(source: string, tokenize: (source: string) => unknown): string {
  const tags = findTags(source);
  const fails = ({ end }: Tag): boolean => {
    try {
      tokenize(source.slice(0, end));
      return false;
    } catch {
      return true;
    }
  };
  let [first, last] = [0, tags.length - 1];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (fails(tags[middle]!)) last = middle;
    else first = middle + 1;
  }
  return describeOffset(source, tags[first]?.start ?? source.length);
}

/** The tag of the last token that the parser reads; null: it reads beyond the end. */
export function locateParseError<T extends { readonly type: string }>(
  source: string,
  tokens: readonly T[],
  parse: (tokens: T[]) => unknown,
): string | null {
  let lastIndex = 0;
  const watched = new Proxy([...tokens], {
    get(target, key) {
      const index = typeof key === 'string' ? Number(key) : NaN;
      if (Number.isInteger(index)) lastIndex = Math.max(lastIndex, index);
      return Reflect.get(target, key) as unknown;
    },
  });
  try {
    parse(watched);
  } catch {
    if (lastIndex >= tokens.length) return null;
  }
  const opens = tokens
    .slice(0, lastIndex + 1)
    .filter(({ type }) => /^(Open(Statement|Expression)|Comment)$/.test(type));
  return describeOffset(source, findTags(source)[opens.length - 1]?.start ?? 0);
}
