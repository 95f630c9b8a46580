/** Licences that a program under MIT may contain. */
const SHIPPED = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'Unlicense', '0BSD', 'BlueOak-1.0.0']); // prettier-ignore
/** For tools only: changes to files under MPL must be published, and we change none. */
const TOOLS = new Set([...SHIPPED, 'MPL-2.0', 'CC0-1.0', 'Python-2.0', 'CC-BY-4.0']);

/** Whether an SPDX expression of names, AND, OR and parentheses can be satisfied with `allowed`. */
export function satisfies(expression, allowed) {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const one = () => {
    if (tokens[at] !== '(') return allowed.has(tokens[at++]);
    at++;
    const value = either();
    return tokens[at++] === ')' && value;
  };
  const both = () => {
    let value = one();
    while (tokens[at] === 'AND') value = (at++, one()) && value;
    return value;
  };
  const either = () => {
    let value = both();
    while (tokens[at] === 'OR') value = (at++, both()) || value;
    return value;
  };
  const value = either();
  return value && at === tokens.length;
}

/** One sentence for each package that must not be here. */
export function findProblems(packages) {
  return packages.flatMap(({ path, version, license, integrity, hasInstallScript, isShipped }) => {
    const label = `${path}@${version}`;
    const problems = [];
    if (license === null) problems.push(`${label} names no licence`);
    else if (!satisfies(license, isShipped ? SHIPPED : TOOLS)) {
      problems.push(
        `${label} is under ${license}, which is not allowed for ${isShipped ? 'shipped packages' : 'tools'}`,
      );
    }
    if (hasInstallScript) problems.push(`${label} runs a script when it is installed`);
    if (integrity === null || !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)) {
      problems.push(`${label} has no SHA-512 in the lock file`);
    }
    return problems;
  });
}
