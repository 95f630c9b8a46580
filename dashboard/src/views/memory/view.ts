import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'memory',
  title: 'Memory',
  icon: 'memory',
  order: 4,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
