addEventListener('load', () => {
  document.querySelectorAll('details').forEach(one => one.open = true);
  const found = [];
  let pictures = 0;
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    pictures += 1;
    const texts = [...svg.querySelectorAll('text')].map(text => {
      return { is: text.textContent.trim(), at: text.getBoundingClientRect() };
    });
    texts.forEach((one, index) => {
      if (one.at.left < frame.left - 1 || one.at.right > frame.right + 1) {
        found.push('outside: ' + one.is);
      }
      for (const other of texts.slice(index + 1)) {
        const width = Math.min(one.at.right, other.at.right) - Math.max(one.at.left, other.at.left);
        const height = Math.min(one.at.bottom, other.at.bottom) - Math.max(one.at.top, other.at.top);
        if (width > 1 && height > 2) found.push('overlap: ' + one.is + ' / ' + other.is);
      }
    });
  }
  if (pictures === 0) found.push('no picture');
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth + 1) found.push('too wide: ' + page.scrollWidth);
  parent.postMessage(found.length ? found.slice(0, 9).join('; ') : 'fine', '*');
});
