import { existsSync } from 'node:fs';

/** The folder of package.json: this module may run from src/, from a bundle in dist/, or from modules that tests import. */
function findPackageFolder(): URL {
  for (let folder = new URL('./', import.meta.url); ; folder = new URL('../', folder)) {
    if (existsSync(new URL('package.json', folder)) || folder.pathname === '/') return folder;
  }
}

export const PACKAGE_FOLDER = findPackageFolder();
