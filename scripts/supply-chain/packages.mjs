// The locked packages, and which of them reach a user: the dependencies, and what the dashboard bundles.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const nameOf = (path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** Where a package finds another one: its own node_modules, then those above. */
function resolve(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === '') return null;
  }
}

const edgesOf = (packages, path) => {
  const { dependencies = {}, optionalDependencies = {} } = packages[path];
  return [...new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)])]
    .map((name) => resolve(packages, path, name))
    .filter((found) => found !== null)
    .toSorted();
};

/** Bare imports of the dashboard's sources: vite puts these packages into dist/dashboard, although they are development ones. */
export function listBundled(root) {
  const folder = join(root, 'dashboard/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const names = files
    .filter((file) => /\.(?:tsx?|css)$/.test(file) && !/\.test\.tsx?$/.test(file))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(/(?:from|import|import\()\s*['"]([^.'"/][^'"]*)['"]/g),
    ])
    .map(([, specifier]) => specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/')); // prettier-ignore
  return [...new Set(names)].toSorted();
}

/** All packages but the root, in the order of their paths. `isShipped`: a user gets it with the package or by installing it. */
export function readPackages(lock, bundled) {
  const { packages } = lock;
  const shipped = new Set();
  const visit = (path) => {
    if (shipped.has(path)) return;
    shipped.add(path);
    for (const next of edgesOf(packages, path)) visit(next);
  };
  const roots = [...Object.keys(packages[''].dependencies ?? {}), ...bundled];
  for (const name of roots) if (packages[`node_modules/${name}`] !== undefined) visit(`node_modules/${name}`);
  return Object.keys(packages)
    .filter((path) => path !== '')
    .toSorted()
    .map((path) => ({
      path,
      name: packages[path].name ?? nameOf(path),
      version: packages[path].version,
      license: packages[path].license ?? null,
      integrity: packages[path].integrity ?? null,
      hasInstallScript: packages[path].hasInstallScript === true,
      isShipped: shipped.has(path),
      dependencies: edgesOf(packages, path),
    }));
}
