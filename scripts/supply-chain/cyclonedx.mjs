import { createHash } from 'node:crypto';

/** A UUID of the contents: the same lock file gives the same document. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
const referenceOf = ({ path, name, version }) => `${purlOf(name, version)}#${path}`;
const licenceOf = (license) => (/[ ()]/.test(license) ? { expression: license } : { license: { id: license } });

/** A CycloneDX 1.6 document without times or random numbers. `files`: native kernels, with `path`, `sha256`. */
export function describePackages({ name, version, license, dependencies }, packages, files) {
  const byPath = new Map(packages.map((one) => [one.path, one]));
  const root = purlOf(name, version);
  const components = [
    ...packages.map((one) => ({
      type: 'library',
      'bom-ref': referenceOf(one),
      name: one.name,
      version: one.version,
      // `excluded`: needed to build and test, not to run.
      scope: one.isShipped ? 'required' : 'excluded',
      ...(one.integrity === null
        ? {}
        : { hashes: [{ alg: 'SHA-512', content: Buffer.from(one.integrity.slice('sha512-'.length), 'base64').toString('hex') }] }), // prettier-ignore
      ...(one.license === null ? {} : { licenses: [licenceOf(one.license)] }),
      purl: purlOf(one.name, one.version),
    })),
    ...files.map(({ path, sha256 }) => ({
      type: 'file',
      'bom-ref': path,
      name: path,
      scope: 'required',
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    })),
  ];
  const graph = [
    {
      ref: root,
      dependsOn: [
        ...Object.keys(dependencies).map((one) => referenceOf(byPath.get(`node_modules/${one}`))),
        ...files.map(({ path }) => path),
      ].toSorted(),
    },
    ...packages.map((one) => ({
      ref: referenceOf(one),
      dependsOn: [...new Set(one.dependencies.map((path) => referenceOf(byPath.get(path))))].toSorted(),
    })),
  ];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([root, components, graph]))}`,
    version: 1,
    metadata: {
      component: { type: 'application', 'bom-ref': root, name, version, licenses: [licenceOf(license)], purl: root },
    },
    components,
    dependencies: graph,
  };
}
