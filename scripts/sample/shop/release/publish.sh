echo "shop $1 is ready for the mirrors"
echo "$1" >VERSION
