// A picture from the camera, as a file like any other.

const element = (id) => document.getElementById(id);

export async function openCamera(take) {
  const dialog = element("camera-dialog");
  const video = element("video");
  element("camera-fault").textContent = "";
  element("shoot").disabled = true;
  element("shoot").onclick = async () => take(await shot(video));
  element("camera-close").onclick = () => dialog.close();
  dialog.onclose = () => {
    for (const track of video.srcObject?.getTracks() ?? []) track.stop();
    video.srcObject = null;
  };
  dialog.showModal();
  try {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1920 } } });
    if (dialog.open) await video.play();
    else dialog.onclose();
    element("shoot").disabled = false;
  } catch (error) {
    element("camera-fault").textContent = `The camera can't be used (${error.message}).`;
  }
}

async function shot(video) {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const picture = await new Promise((ready) => canvas.toBlob(ready, "image/png"));
  return new File([picture], `camera ${new Date().toLocaleTimeString()}.png`, { type: "image/png" });
}
