// A picture from the camera, as a file like any other; or, where the page asks for it, one after another.

// What is said here; a page may have words of its own.
export const words = {
  fault: (message) => `The camera can't be used (${message}).`,
  name: (time) => `camera ${time}.png`,
};
const element = (id) => document.getElementById(id);

export async function openCamera(take, takeLive) {
  const dialog = element("camera-dialog");
  const video = element("video");
  const live = takeLive ? element("live") : null;
  element("camera-fault").textContent = "";
  element("shoot").disabled = true;
  element("shoot").onclick = async () => take(await shot(video));
  element("camera-close").onclick = () => dialog.close();
  dialog.onclose = () => {
    for (const track of video.srcObject?.getTracks() ?? []) track.stop();
    video.srcObject = null;
  };
  if (live) {
    live.checked = false;
    live.onchange = () => live.checked && follow(video, live, takeLive);
  }
  dialog.showModal();
  try {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1920 } } });
    if (dialog.open) await video.play();
    else dialog.onclose();
    element("shoot").disabled = false;
  } catch (error) {
    element("camera-fault").textContent = words.fault(error.message);
  }
}

// As fast as verdicts come: the next picture is taken when there is one for the last.
async function follow(video, live, take) {
  while (live.checked && video.srcObject) {
    try {
      await take(await shot(video));
    } catch (error) {
      live.checked = false;
      element("camera-fault").textContent = error.message;
    }
  }
}

async function shot(video) {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const picture = await new Promise((ready) => canvas.toBlob(ready, "image/png"));
  return new File([picture], words.name(new Date().toLocaleTimeString()), { type: "image/png" });
}
